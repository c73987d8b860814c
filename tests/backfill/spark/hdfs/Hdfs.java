import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with one data node in the folder that is given. Prints "port N", and ends with its input. */
public final class Hdfs {
    public static void main(String[] arguments) throws Exception {
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("port " + cluster.getNameNodePort());
        System.in.transferTo(java.io.OutputStream.nullOutputStream());
        cluster.shutdown();
    }
}
